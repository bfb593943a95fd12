"""What the tests here run with: attackers, neighbours, a failing API server, what is measured."""
