"""Delta and Iceberg tables as readers and writers both need them: addresses, versions, one transaction for a result."""
