terraform {
  # As of 1.11 there are write-only values, which keep secrets out of the state.
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}
