# Import files: <cluster>/<name>. The state gets the source and patterns that they were last copied from, and what the
# hosts have; the source itself is read in the next plan.
terraform import trainyard_files.code lab/code

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_files.code ssh://ops@gpu1/lab/code
