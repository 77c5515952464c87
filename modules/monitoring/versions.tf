terraform {
  # From 1.11 on there are write-only values, by which Grafana's password is in no state.
  required_version = ">= 1.11"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}
