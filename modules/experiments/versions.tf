terraform {
  # As of 1.9, a variable's validation can refer to other variables.
  required_version = ">= 1.9"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}
