"""Compares models: --model A --model B."""

import sys

from generation import main, parser

if __name__ == "__main__":
    flags = parser(__doc__, max_tokens=64)
    args = flags.parse_args()
    if len(args.model or []) < 2:
        flags.error("two models at least: --model A --model B")
    sys.exit(main(args, "model_compare"))
