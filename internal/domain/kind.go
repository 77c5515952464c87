package domain

// Kind is what the items of a kind that are stored with a cluster have in common, as far as a store has to know.
type Kind struct {
	// Name is part of the names of files and objects: lower-case letters and hyphens.
	Name string
	// Noun is what one item is called in an error.
	Noun string
	// MaxBytes limits the size of an item; 0 is what the engine can store.
	MaxBytes int
	// Planned items are read by plans: all of them with one request.
	Planned bool
	// Watched items wake those who watch the cluster when they change.
	Watched bool
}

// The kinds of documents. An item of any other kind needs the cluster's, and goes with it.
var (
	ClusterKind = Kind{Name: "cluster", Noun: "cluster", Planned: true, Watched: true}
	GroupKind   = Kind{Name: "group", Noun: "group", Planned: true, Watched: true}
	GPUPoolKind = Kind{Name: "gpu-pool", Noun: "GPU pool", Planned: true, Watched: true}
	PolicyKind  = Kind{Name: "policy", Noun: "autoscaling policy", Planned: true, Watched: true}
)
