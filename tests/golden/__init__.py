"""A fixed program, and every byte that the service made of it when it was recorded.

    program ─► play ─► Recording ─► recorded/     `python -m tests.golden` writes it anew
                           └──────── compare ◄┘    a test says what differs

`program` and `queries` say what comes in, `play` runs it through the functions of the job, `recording` keeps the bytes
in files, and `compare` says what differs and whether it may.
"""
