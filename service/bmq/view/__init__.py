"""The live page: what Kafka has now, as updates for browsers, and commands from them."""
