package engine

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Store stores a cluster's specifications and state. It does not interpret the items; [Get], [List], [Put] and [Delete]
// are typed access to those that are documents.
type Store interface {
	// Get returns an item, or [ErrNotFound].
	Get(ctx context.Context, key Key) (Item, error)
	// List returns all items of a kind, unordered. An unreadable item is an error, never left out.
	List(ctx context.Context, kind domain.Kind) ([]Item, error)
	// Put stores an item and returns it with its new revision. Its Revision must be the stored one (0 if there is
	// none), otherwise the error is [ErrConflict]. Without the cluster's item, any other is [ErrNotFound].
	Put(ctx context.Context, item Item) (Item, error)
	// Delete removes an item; with the cluster's, all others first. It does nothing if there is none.
	Delete(ctx context.Context, key Key) error
}

// Key identifies an item of a cluster.
type Key struct {
	Kind domain.Kind
	// Name consists of lower-case letters, digits and hyphens, in one or two parts separated by a slash; empty for the
	// cluster's item.
	Name string
}

// String returns what errors call the item, such as `GPU pool "a40"`.
func (k Key) String() string {
	if k.Name == "" {
		return k.Kind.Noun
	}
	return fmt.Sprintf("%s %q", k.Kind.Noun, k.Name)
}

// Item is the value of a key.
type Item struct {
	Key
	// Revision counts the writes.
	Revision int
	// Data is shared by all readers of the item and must not be modified.
	Data []byte
	// Where is the file or object that holds it, for errors about its content. The store sets it.
	Where string
}

// Contents returns the data of a kind's items, by name.
func Contents(ctx context.Context, s Store, kind domain.Kind) (map[string][]byte, error) {
	items, err := s.List(ctx, kind)
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(items))
	for _, item := range items {
		data[item.Name] = item.Data
	}
	return data, nil
}

var itemName = regexp.MustCompile(`^[a-z0-9-]{1,63}(/[a-z0-9-]{1,63})?$`)

// Check returns an error if an engine with these traits can't store the item.
func (i Item) Check(traits Traits) error {
	most := min(cmp.Or(i.Kind.MaxBytes, len(i.Data)), cmp.Or(traits.MaxItem, len(i.Data)))
	switch {
	case !itemName.MatchString(i.Name) && i.Key != (Key{Kind: domain.ClusterKind}):
		return fmt.Errorf("%s can't be stored: invalid name: use one or two parts of 1 to 63 lower-case letters, "+
			"digits and hyphens, separated by a slash", i.Key)
	case len(i.Data) == 0:
		return fmt.Errorf("%s can't be stored: it is empty", i.Key)
	case len(i.Data) > most:
		return fmt.Errorf("%s can't be stored: it takes %d bytes, and at most %d are allowed: move files, "+
			"environment and long commands into "+
			"the image or a volume, or split it up", i.Key, len(i.Data), most)
	}
	return nil
}
