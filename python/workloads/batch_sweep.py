"""Batch sweep: the same generation at several batch sizes."""

import sys

from generation import main, make_parser

if __name__ == "__main__":
    flags = make_parser(__doc__, max_tokens=64, batch_sizes="1,4,8")
    args = flags.parse_args()
    sys.exit(main(args, "batch_sweep"))
