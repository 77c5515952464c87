variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs MPI) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with MPI (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "mpiexec" {
  description = "Path of MPICH's program mpiexec (pip install mpich)."
  type        = string
  default     = "mpiexec"
}

variable "proxy" {
  description = "Path of the program hydra_pmi_proxy of the same MPICH."
  type        = string
  default     = "hydra_pmi_proxy"
}

variable "python" {
  description = "Python interpreter with mpi4py and scikit-learn (pip install mpi4py scikit-learn)."
  type        = string
  default     = "python3"
}

variable "port" {
  description = "Port on which the launcher waits for its workers."
  type        = number
  default     = 7500
}

variable "workers" {
  description = "Number of workers, each with one rank."
  type        = number
  default     = 3
}

variable "epochs" {
  description = "Number of epochs."
  type        = number
  default     = 20
}
