"""Deep dive for ncu: 8 tokens, one repeat; cudaProfilerStart/Stop lie around the measured part."""

import sys

from generation import main, parser

if __name__ == "__main__":
    flags = parser(__doc__, max_tokens=8)
    flags.set_defaults(repeats=1, warmups=1)
    args = flags.parse_args()
    sys.exit(main(args, "deep_dive"))
