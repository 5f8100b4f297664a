"""Data frames and catalogue tables of Spark, asked where they are."""
