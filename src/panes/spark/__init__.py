"""Plans on Apache Spark: the only room that imports pyspark."""
