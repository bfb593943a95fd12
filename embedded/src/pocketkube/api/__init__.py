"""The API as calls: create, get, list, update, patch, delete, bind, evict."""
