"""Lists and watches objects of the API server and turns them into changes of the core."""
