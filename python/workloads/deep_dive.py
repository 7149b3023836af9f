"""Deep dive for ncu: 8 tokens, one repeat; between cudaProfilerStart and cudaProfilerStop."""

import sys

from generation import main, make_parser

if __name__ == "__main__":
    flags = make_parser(__doc__, max_tokens=8)
    flags.set_defaults(repeats=1, warmups=1)
    args = flags.parse_args()
    sys.exit(main(args, "deep_dive"))
