"""The structure of objects, as the recorded OpenAPI document and CRDs give it."""
