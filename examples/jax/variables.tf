variable "engine" {
  description = "What runs the processes: `process`, this machine, which then needs JAX itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with JAX (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "python" {
  description = "Python that has JAX and scikit-learn (pip install \"jax[cpu]\" scikit-learn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of times that all images are learnt from."
  type        = number
  default     = 20
}
