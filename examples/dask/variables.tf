variable "engine" {
  description = "What runs the members: `process`, this machine, which then needs Dask itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with Dask (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "dask" {
  description = "The program dask (pip install distributed)."
  type        = string
  default     = "dask"
}

variable "python" {
  description = "Python that has Dask and scikit-learn (pip install distributed scikit-learn)."
  type        = string
  default     = "python3"
}

variable "port" {
  description = "Port of the scheduler."
  type        = number
  default     = 8786
}

variable "workers" {
  description = "Number of workers. Another number restarts nobody."
  type        = number
  default     = 2
}

variable "rounds" {
  description = "Number of rounds: in each, workers learn from all images, and the average of what they have learnt is taken."
  type        = number
  default     = 20
}
