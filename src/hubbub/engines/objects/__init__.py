"""Tables that are files in an object store: `s3://` and `gs://`."""
