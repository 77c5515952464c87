terraform {
  required_version = ">= 1.9"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}
