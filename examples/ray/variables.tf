variable "engine" {
  description = "What runs the members: `process`, this machine, which then needs Ray itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with Ray (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "ray" {
  description = "For process: the program ray (pip install ray)."
  type        = string
  default     = "ray"
}

variable "python" {
  description = "Python that has Ray and scikit-learn (pip install ray scikit-learn)."
  type        = string
  default     = "python3"
}

variable "temp_dir" {
  description = "For process: where Ray keeps logs and sockets, a folder a member. A short path: those of sockets end at 107 bytes."
  type        = string
  default     = "/tmp/ray"
}

variable "port" {
  description = "Port of the head."
  type        = number
  default     = 6379
}

variable "workers" {
  description = "Number of workers, each of which runs a trial at a time. Another number restarts nobody."
  type        = number
  default     = 2
}

variable "trials" {
  description = "Number of settings that are tried."
  type        = number
  default     = 16
}
