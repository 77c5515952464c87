variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs JAX) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with JAX (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "python" {
  description = "Python interpreter with JAX and scikit-learn (pip install \"jax[cpu]\" scikit-learn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of epochs."
  type        = number
  default     = 20
}
