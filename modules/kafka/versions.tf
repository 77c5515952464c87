terraform {
  # From 1.9 on the rule of a variable can look at others.
  required_version = ">= 1.9"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}
