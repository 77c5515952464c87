variable "engine" {
  description = "Engine of the cluster: `process` (this machine), `swarm`, or `systemd` (bare hosts)."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm and systemd: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. With swarm, they form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string), advertise_address = optional(string) }))
  default     = null
}

variable "ssh" {
  description = "How to log in to hosts. Defaults to the keys and known hosts that ssh would use."
  type        = object({ user = optional(string), identity_files = optional(list(string)), known_hosts_files = optional(list(string)) })
  default     = null
}

variable "trainer" {
  description = "For process and systemd: path of the training program, built with `CGO_ENABLED=0 go build -o digits-trainer ./trainer`. Defaults to `digits-trainer` in this folder, where it has to be for swarm."
  type        = string
  default     = null
}

variable "steps" {
  description = "Mini-batches that each worker trains on."
  type        = number
  default     = 1500

  validation {
    condition     = var.steps >= 1 && var.steps == floor(var.steps)
    error_message = "steps is ${var.steps}: it must be a whole number, 1 or more. To train without end, set completion = \"never\"."
  }
}

variable "completion" {
  description = "`chief`: a job that completes when its chief does. `never`: a service that trains until it is destroyed."
  type        = string
  default     = "chief"

  validation {
    condition     = contains(["chief", "never"], var.completion)
    error_message = "completion is \"${var.completion}\": it must be \"chief\" or \"never\"."
  }
}
