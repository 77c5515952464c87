# Files are imported by the names of their cluster and their own. The state gets the source and the patterns that they
# were last brought from, and what the hosts have; the source itself is read at the next plan.
terraform import trainyard_files.code lab/code

# Of a cluster that can't be found by its name alone, as on bare hosts, the address of a host comes first.
terraform import trainyard_files.code ssh://ops@gpu1/lab/code
