"""The library: the engine of the service without Kafka and Spark. `bmq` forwards to the public names.

It knows tables of readings and events. It must not know topics, records, shards or the state store.
"""
