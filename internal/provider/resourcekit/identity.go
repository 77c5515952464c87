package resourcekit

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Identity identifies an item of a cluster among those of its kind.
type Identity struct {
	Cluster types.String `tfsdk:"cluster"`
	Name    types.String `tfsdk:"name"`
}

// IdentitySchema returns the identity schema for a kind of items.
func IdentitySchema(kind string) identityschema.Schema {
	return identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"cluster": identityschema.StringAttribute{Description: "Name of the cluster.", RequiredForImport: true},
			"name": identityschema.StringAttribute{
				Description: "Name of the " + kind + ".", RequiredForImport: true,
			},
		},
	}
}

// Importable is a kind of items that are imported by the names of their cluster and their own.
type Importable struct {
	// Kind is what an item is called, and Form describes an item and its ID.
	Kind, Form string
	// Valid reports whether a name is valid.
	Valid func(name string) bool
}

// socket matches an address with a path: of a named pipe, or of a socket with the usual ending.
var socket = regexp.MustCompile(`^(npipe:////\./pipe/[^/]+|(?:unix|ssh)://[^/]*/(?:[^/]+/)*?[^/]*\.sock)(?:/|$)`)

// CutEndpoint splits an import ID into the address of a host of the cluster, such as ssh://ops@gpu1, which may be
// empty, and the names after it: at least as many as this, as a name may contain slashes. A local socket without the
// usual ending is taken to end before the minimum of names.
func CutEndpoint(id string, least int) (endpoint, names string) {
	if at := socket.FindStringSubmatchIndex(id); at != nil {
		return id[:at[3]], id[at[1]:]
	}
	scheme, rest, ok := strings.Cut(id, "://")
	if !ok {
		return "", id
	}
	parts := strings.Split(rest, "/")
	first := 1
	if parts[0] == "" {
		first = max(first, len(parts)-least)
	}
	return scheme + "://" + strings.Join(parts[:first], "/"), strings.Join(parts[first:], "/")
}

// Into imports an item by ID, or by its parts as identity. The engine is the one that has a document of the cluster.
func (i Importable) Into(
	ctx context.Context, s *Session, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	endpoint, names := CutEndpoint(req.ID, 2)
	cluster, name, ok := strings.Cut(names, "/")
	if req.ID == "" && req.Identity != nil {
		var given Identity
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
		cluster, name, ok = given.Cluster.ValueString(), given.Name.ValueString(), true
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !ok || cluster == "" || !i.Valid(name) {
		resp.Diagnostics.AddError("Invalid import ID", fmt.Sprintf("%q is not the ID of %s.", req.ID, i.Form))
		return
	}
	if ImportCluster(ctx, s, endpoint, cluster, i.Kind, resp) {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
		resp.Diagnostics.Append(resp.Identity.Set(ctx,
			Identity{Cluster: types.StringValue(cluster), Name: types.StringValue(name)})...)
	}
}

// ImportCluster imports the reference to the cluster of an item, by its name and the address of a host, if given.
func ImportCluster(
	ctx context.Context, s *Session, endpoint, cluster, kind string, resp *resource.ImportStateResponse,
) bool {
	key, err := s.Find(ctx, endpoint, cluster)
	if err != nil {
		AddError(&resp.Diagnostics, "Unable to import the "+kind, err)
		return false
	}
	for at, value := range map[string]types.String{
		"name": types.StringValue(key.Name), "engine": types.StringValue(key.Engine),
		"endpoint": TextOrNull(key.Endpoint),
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("cluster").AtName(at), value)...)
	}
	return true
}

// PlainName reports whether a name can be part of an ID.
func PlainName(name string) bool { return name != "" && !strings.Contains(name, "/") }
