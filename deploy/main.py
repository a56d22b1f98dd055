"""What spark-submit runs on a cluster: `spark-submit … deploy/main.py --config bmq.toml` is `bmq serve`.

Master, memory and jars are spark-submit's; docs/operations.md has a whole command.
"""

import sys

from bmq.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "serve")
    main()
