//go:build linux

package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The slash in an item's name is a dot in its file's: neither kinds nor names contain one.
const slash, dot = "/", "."

// Items returns the folder for the items of a kind: Documents are watched.
func Items(kind domain.Kind) string {
	if kind.Watched {
		return Documents
	}
	return Records
}

// ItemName returns the name of an item's document in its folder.
func ItemName(key engine.Key) string {
	if key.Name == "" {
		return key.Kind.Name
	}
	return key.Kind.Name + dot + strings.ReplaceAll(key.Name, slash, dot)
}

// KeyOf returns the key of the item with this document name, and false if it is of another kind.
func KeyOf(kind domain.Kind, document string) (engine.Key, bool) {
	if document == kind.Name {
		return engine.Key{Kind: kind}, true
	}
	name, found := strings.CutPrefix(document, kind.Name+dot)
	return engine.Key{Kind: kind, Name: strings.ReplaceAll(name, dot, slash)}, found
}

// Item returns the path of an item's document.
func (d Dir) Item(key engine.Key) string { return d.Document(Items(key.Kind), ItemName(key)) }

// itemHeader is the first line of an item's document.
type itemHeader struct {
	Revision int `json:"revision"`
}

// ReadItem returns the item in a file without its key, which is left to the caller: [engine.ErrNotFound] if there is no
// file, [*engine.CorruptError] if it holds something else.
func ReadItem(path string) (engine.Item, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Item{}, engine.ErrNotFound
	}
	if err != nil {
		return engine.Item{}, err
	}
	first, data, _ := bytes.Cut(content, []byte("\n"))
	var header itemHeader
	err = json.Unmarshal(first, &header)
	switch {
	case err != nil:
	case header.Revision < 1:
		err = fmt.Errorf("its first line has revision %d; it must be at least 1", header.Revision)
	case len(data) == 0:
		err = errors.New("it has nothing after its first line")
	}
	if err != nil {
		return engine.Item{}, &engine.CorruptError{Where: path, Err: err}
	}
	return engine.Item{Revision: header.Revision, Data: data, Where: path}, nil
}

// WriteItem replaces the document of an item as [Write] does, durably.
func (d Dir) WriteItem(item engine.Item) error {
	path := d.Item(item.Key)
	if err := MakeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	header, err := json.Marshal(itemHeader{item.Revision})
	if err != nil {
		return err
	}
	return replace(path, bytes.Join([][]byte{header, item.Data}, []byte("\n")), ownerOnly, Durable)
}

// DeleteItem deletes the document of an item, if it exists, and flushes that to disk: after a power loss, nothing would
// tell that it was deleted.
func DeleteItem(path string) error {
	if err := Delete(path); err != nil {
		return err
	}
	return syncDeletions(filepath.Dir(path))
}

// RemoveItems deletes all items except the cluster's, as [DeleteItem] does.
func (d Dir) RemoveItems() error {
	for _, folder := range []string{Records, Documents} {
		names, err := d.Names(folder)
		if err != nil {
			return err
		}
		for name := range names {
			if name == domain.ClusterKind.Name {
				continue
			}
			if err := Delete(d.Document(folder, name)); err != nil {
				return err
			}
		}
		if err := syncDeletions(d.Path(folder)); err != nil {
			return err
		}
	}
	return nil
}

// AnyKey returns the key of the item that has a document of this name in a folder. Only the name of its kind is known,
// and that its items are in this folder.
func AnyKey(folder, document string) engine.Key {
	kind, name, _ := strings.Cut(document, dot)
	return engine.Key{
		Kind: domain.Kind{Name: kind, Watched: folder == Documents}, Name: strings.ReplaceAll(name, dot, slash),
	}
}
