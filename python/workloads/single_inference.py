"""Single inference: 64 new tokens per sequence, warmed up."""

import sys

from generation import main, make_parser

if __name__ == "__main__":
    flags = make_parser(__doc__, max_tokens=64)
    args = flags.parse_args()
    sys.exit(main(args, "single_inference"))
