"""The checks behind the ledger, one module for each chapter."""
