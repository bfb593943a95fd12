"""Protobuf bodies: read and written by the numbers of fields that were recorded."""
