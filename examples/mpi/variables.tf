variable "engine" {
  description = "What runs the ranks: `process`, this machine, which then needs MPI itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with MPI (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "mpiexec" {
  description = "The program mpiexec of MPICH (pip install mpich)."
  type        = string
  default     = "mpiexec"
}

variable "proxy" {
  description = "The program hydra_pmi_proxy of the same MPICH."
  type        = string
  default     = "hydra_pmi_proxy"
}

variable "python" {
  description = "Python that has mpi4py and scikit-learn (pip install mpi4py scikit-learn)."
  type        = string
  default     = "python3"
}

variable "port" {
  description = "Port at which the launcher waits for its workers."
  type        = number
  default     = 7500
}

variable "workers" {
  description = "Number of workers, each of which has a rank."
  type        = number
  default     = 3
}

variable "epochs" {
  description = "Number of times that all images are learnt from."
  type        = number
  default     = 20
}
