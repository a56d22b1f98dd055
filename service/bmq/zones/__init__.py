"""Files of queries: features of GIS files as definitions, and folders with the desired state. Knows no Kafka."""
