"""Compares models: --model A --model B."""

import sys

from generation import main, make_parser

if __name__ == "__main__":
    flags = make_parser(__doc__, max_tokens=64)
    args = flags.parse_args()
    if len(args.model or []) < 2:
        flags.error("at least two models are needed: --model A --model B")
    sys.exit(main(args, "model_compare"))
