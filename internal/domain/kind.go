package domain

// Kind describes a kind of stored item, as far as a store has to know.
type Kind struct {
	// Name is part of the names of files and objects: lower-case letters and hyphens.
	Name string
	// Noun is what an error calls one item.
	Noun string
	// MaxBytes limits the size of an item; 0 means what the engine can store.
	MaxBytes int
	// Planned items are read by plans, all of them with one request.
	Planned bool
	// Watched items wake the watchers of the cluster when they change.
	Watched bool
}

// The kinds of documents. Items of any other kind require the cluster's document, and are removed with it.
var (
	ClusterKind = Kind{Name: "cluster", Noun: "cluster", Planned: true, Watched: true}
	GroupKind   = Kind{Name: "group", Noun: "group", Planned: true, Watched: true}
	GPUPoolKind = Kind{Name: "gpu-pool", Noun: "GPU pool", Planned: true, Watched: true}
	PolicyKind  = Kind{Name: "policy", Noun: "autoscaling policy", Planned: true, Watched: true}
)
