variable "hosts" {
  description = "Hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }."
  type        = map(object({ address = string, role = optional(string), advertise_address = optional(string) }))
}

variable "image" {
  description = "Image of the trainer, including its registry, such as registry.example.com/digits-trainer:1."
  type        = string

  validation {
    condition     = can(regex("^[^/]+[.:][^/]*/", var.image))
    error_message = "image is \"${var.image}\": it must start with the host of a registry, such as registry.example.com/digits-trainer:1."
  }
}

variable "registry_login" {
  description = "User name and password, or token, for pulling from the image's registry. Defaults to the credentials that docker login stored on this machine."
  type        = object({ username = optional(string), password = optional(string), token = optional(string) })
  sensitive   = true
  default     = null
}

variable "ssh" {
  description = "How to log in to hosts. Defaults to the keys and known hosts that ssh would use."
  type        = object({ user = optional(string), identity_files = optional(list(string)), known_hosts_files = optional(list(string)) })
  default     = null
}

variable "steps" {
  description = "Mini-batches that each worker trains on."
  type        = number
  default     = 1500
}
