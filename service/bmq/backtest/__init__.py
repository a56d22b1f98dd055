"""`bmq backtest`: queries over recorded readings, and a forecast of how noisy they are.

Knows files and the engine of the library. It decides no rule for queries or events, and knows no Spark.
"""
