//go:build linux

package swarm_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// credentials are variables that Terraform gets through its environment, and that must not appear anywhere.
type credentials map[string]string

// set sets the variables in a workspace, and returns their declarations.
func (c credentials) set(w *swarmWorkspace) (declarations string) {
	for name, secret := range c {
		w.Env("TF_VAR_"+name, secret)
		declarations += fmt.Sprintf("variable %q {\n  type      = string\n  sensitive = true\n  ephemeral = true\n}\n",
			name)
	}
	return declarations
}

// hidden runs Terraform with all logging, expects success, and fails if a credential appears in the log, the output,
// the state, or a saved plan.
func (c credentials) hidden(w *swarmWorkspace, args ...string) {
	w.swarmLab.Helper()
	logs := filepath.Join(w.Dir, "trace.log")
	w.must(os.RemoveAll(logs))
	command := w.Command(context.Background(), []string{"TF_LOG=TRACE", "TF_LOG_PATH=" + logs}, args...)
	printed, err := command.CombinedOutput()
	if err != nil {
		w.swarmLab.Fatalf("%s: %v\n%s", args, err, printed)
	}
	logged, err := os.ReadFile(logs)
	w.must(err)
	if !bytes.Contains(logged, []byte("engine call")) || !bytes.Contains(logged, []byte("[TRACE]")) {
		w.swarmLab.Errorf("%s: there is no trace of the provider in the log, which has %d bytes", args, len(logged))
	}
	seen := map[string][]byte{"log": logged, "output": printed}
	for _, file := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		if content, err := os.ReadFile(filepath.Join(w.Dir, file)); err == nil {
			seen[file] = content
		}
	}
	if slices.Contains(args, "-out="+savedPlan) {
		for name, content := range w.saved() {
			seen["plan's "+name] = content
		}
	}
	for name, secret := range c {
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "-----") {
				continue
			}
			for where, content := range seen {
				if bytes.Contains(content, []byte(line)) {
					w.swarmLab.Errorf("%s: %s is to be seen in the %s", args, name, where)
				}
			}
		}
	}
}

// savedPlan is the file of saved plans.
const savedPlan = "tfplan"

// saved returns the parts of the workspace's saved plan.
func (w *swarmWorkspace) saved() map[string][]byte {
	w.swarmLab.Helper()
	plan, err := zip.OpenReader(filepath.Join(w.Dir, savedPlan))
	w.must(err)
	defer plan.Close()
	parts := map[string][]byte{}
	for _, file := range plan.File {
		part, err := file.Open()
		w.must(err)
		parts[file.Name], err = io.ReadAll(part)
		w.must(err)
		w.must(part.Close())
	}
	return parts
}

// keeps fails unless every command fails with this message, and the state stays as it was.
func (w *swarmWorkspace) keeps(message *regexp.Regexp, env ...string) {
	w.swarmLab.Helper()
	before := w.Must("state", "list")
	for _, args := range [][]string{
		{"plan"}, {"apply", "-auto-approve"}, {"apply", "-refresh-only", "-auto-approve"}, {"destroy", "-auto-approve"},
	} {
		output, err := w.Command(context.Background(), env, args...).CombinedOutput()
		if err == nil || !message.Match(output) {
			w.swarmLab.Errorf("terraform %s with %q: %v, want an error like %q\n%s", strings.Join(args, " "), env, err,
				message, output)
		}
	}
	if after := w.Must("state", "list"); after != before {
		w.swarmLab.Errorf("the state had\n%s\nand has\n%s", before, after)
	}
}

// docker returns the configuration of a provider that reaches Docker Engines with these attributes.
func docker(attributes string) string { return provider("  docker = {\n" + attributes + "\n  }") }

// provider returns the configuration of the provider with these attributes.
func provider(attributes string) string {
	return "provider \"trainyard\" {\n" + attributes + "\n}\n"
}

// reached returns a configuration with the nodes at these addresses instead of their sockets.
func (l *swarmLab) reached(addresses map[string]string, config string) string {
	for _, node := range l.bed.Nodes {
		config = strings.ReplaceAll(config, fmt.Sprintf("%q", node.Host()), fmt.Sprintf("%q", addresses[node.Name]))
	}
	return config
}

// A Swarm is formed of hosts that are reached over SSH, with a key that appears nowhere, and runs a group. There is no
// communication with hosts whose key is unknown or different, and the state loses nothing.
func TestAccSwarmOverSSH(t *testing.T) {
	acceptance.Test(t)
	acceptance.Requires(t, acceptance.EphemeralValues)
	l := newSwarmLab(t, ownBed(t, testbed.Options{Nodes: 3}), "ssh")
	jump := sshd.Start(t, sshd.Options{})
	servers, addresses, known := map[string]*sshd.Server{}, map[string]string{}, map[string]string{
		"jump": jump.Known(t, sshd.Ed25519()),
	}
	for _, node := range l.bed.Nodes {
		server := sshd.Start(t, sshd.Options{})
		servers[node.Name], addresses[node.Name] = server, "ssh://ops@"+server.Addr+node.Socket
		known[node.Name] = server.Known(t, sshd.Ed25519())
	}
	secrets := credentials{
		"private_key": sshd.PEM(t, sshd.User(), "only-for-this-test"), "passphrase": "only-for-this-test",
	}
	w := newSwarmWorkspace(l)
	w.Env("HOME", t.TempDir())
	w.Env("SSH_AUTH_SOCK", "")
	declarations := secrets.set(w)
	// configure replaces the right host keys in the provider's configuration by these.
	configure := func(others map[string]string, attributes string) {
		var all strings.Builder
		for name, lines := range known {
			if other, found := others[name]; found {
				lines = other
			}
			all.WriteString(lines)
		}
		w.configure(declarations, provider(`  ssh = {
    private_key = var.private_key
    passphrase  = var.passphrase
    known_hosts = <<-END
`+all.String()+`
    END
    `+attributes+`
  }`), l.reached(addresses, l.formed(map[string]string{"node1": `role = "manager"`, "node2": "", "node3": ""})),
			l.group(workers(3, "wait")))
	}

	configure(map[string]string{"node3": ""}, "")
	acceptance.Refuses(w.Workspace, acceptance.Says(`Host can't be queried`,
		`host "node3" is not part of the Swarm yet`, servers["node3"].Addr, `ssh-keyscan`), "plan")

	configure(nil, "")
	secrets.hidden(w, "plan", "-out="+savedPlan)
	secrets.hidden(w, "apply", savedPlan)
	if n := l.running("ssh"); n != 3 {
		t.Errorf("%d members run, want 3", n)
	}
	for name, server := range servers {
		if users := slices.Compact(server.Users()); !slices.Equal(users, []string{"ops"}) {
			t.Errorf("the users %q logged in to %s", users, name)
		}
	}
	w.ExpectNoChange("after the apply")

	configure(nil, fmt.Sprintf("jump_host = %q", "guard@"+jump.Addr))
	secrets.hidden(w, "plan", "-detailed-exitcode")
	if opened := slices.Compact(jump.Opened()); !slices.Equal(opened, []string{servers["node1"].Addr}) {
		t.Errorf("the jump host forwarded to %q, want the manager, %s", opened, servers["node1"].Addr)
	}
	configure(map[string]string{"jump": ""}, fmt.Sprintf("jump_host = %q", "guard@"+jump.Addr))
	w.keeps(acceptance.Says(`host key of `+jump.Addr, `ssh-keyscan`))

	configure(map[string]string{"node1": ""}, "")
	w.keeps(acceptance.Says(servers["node1"].Addr, `ssh-keyscan`))
	configure(map[string]string{"node1": servers["node1"].Known(t, sshd.NewEd25519())}, "")
	w.keeps(acceptance.Says(servers["node1"].Addr, `has changed`))

	configure(nil, "")
	w.ExpectNoChange("with the right keys again")
	secrets.hidden(w, "destroy", "-auto-approve")
}

// A Swarm is formed of hosts that are reached over TLS, with a key that appears nowhere. There is no communication with
// an engine whose certificate somebody else has signed.
func TestAccSwarmOverTLS(t *testing.T) {
	acceptance.Test(t)
	acceptance.Requires(t, acceptance.EphemeralValues)
	l := newSwarmLab(t, ownBed(t, testbed.Options{Nodes: 2, TLS: true}), "tls")
	addresses := map[string]string{}
	for _, node := range l.bed.Nodes {
		addresses[node.Name] = node.TLSHost()
	}
	pem := func(folder, name string) string {
		content, err := os.ReadFile(filepath.Join(folder, name))
		l.must(err)
		return string(content)
	}
	other := testbed.New(t, testbed.Options{Nodes: 1, TLS: true}) // it has another authority
	secrets := credentials{"key": pem(l.bed.Certificates, "key.pem")}
	w := newSwarmWorkspace(l)
	declarations := secrets.set(w)
	configure := func(ca string) {
		w.configure(declarations, docker(fmt.Sprintf(
			"    tls = {\n      ca   = %q\n      cert = %q\n      key  = var.key\n    }", ca,
			pem(l.bed.Certificates, "cert.pem"),
		)),
			l.reached(addresses, l.formed(map[string]string{"node1": `role = "manager"`, "node2": ""})),
			l.group(workers(2, "wait")))
	}
	configure(pem(other.Certificates, "ca.pem"))
	acceptance.Refuses(w.Workspace,
		acceptance.Says(addresses["node1"], `certificate is not signed by the given CA; give the CA that signed it`),
		"plan")

	configure(pem(l.bed.Certificates, "ca.pem"))
	secrets.hidden(w, "plan", "-out="+savedPlan)
	secrets.hidden(w, "apply", savedPlan)
	if n := l.running("tls"); n != 2 {
		t.Errorf("%d members run, want 2", n)
	}
	w.ExpectNoChange("after the apply")

	configure(pem(other.Certificates, "ca.pem"))
	w.keeps(acceptance.Says(addresses["node1"], `certificate`))
	configure(pem(l.bed.Certificates, "ca.pem"))

	// A Swarm that all hosts have left is gone, not elsewhere: a new one is formed.
	for _, node := range slices.Backward(l.bed.Nodes) {
		l.must(node.Client().SwarmLeave(t.Context(), true))
	}
	if code, output := w.exit("plan", "-detailed-exitcode"); code != 2 ||
		!strings.Contains(output, "2 to add, 0 to change, 0 to destroy") {
		t.Errorf("without a Swarm, a plan ends with %d:\n%s", code, output)
	}
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("in another Swarm")
	secrets.hidden(w, "destroy", "-auto-approve")
}

// dockerContext creates a folder with a Docker configuration whose current context leads to an endpoint.
func dockerContext(l *swarmLab, host string) (folder string) {
	l.Helper()
	folder = l.TempDir()
	id := sha256.Sum256([]byte("lab"))
	meta := filepath.Join(folder, "contexts", "meta", hex.EncodeToString(id[:]))
	l.must(os.MkdirAll(meta, 0o700))
	for file, content := range map[string]string{
		filepath.Join(folder, "config.json"): `{"currentContext": "lab"}`,
		filepath.Join(meta,
			"meta.json"): fmt.Sprintf(`{"Name": "lab", "Endpoints": {"docker": {"Host": %q}}}`, host),
	} {
		l.must(os.WriteFile(file, []byte(content), 0o600))
	}
	return folder
}

// Without an endpoint, it is DOCKER_HOST's, or else the current context's. If that leads to another Swarm, nothing
// leaves the state, and nothing is changed there.
func TestAccSwarmElsewhere(t *testing.T) {
	acceptance.Test(t)
	one := testbed.Options{Nodes: 1, Managers: 1}
	here, there := newSwarmLab(t, ownBed(t, one), "here"), newSwarmLab(t, ownBed(t, one), "here")
	proxy := testbed.NewProxy(t, here.bed.Nodes[0])
	w := newSwarmWorkspace(here)
	w.Env("DOCKER_HOST", proxy.Host())
	w.Env("DOCKER_CONTEXT", "")
	cluster := strings.Replace(here.cluster(""), "endpoint =", "# the endpoint is", 1)
	w.configure(cluster, here.group(workers(1, "wait")))
	w.Must("apply", "-auto-approve")
	proxy.Reset()
	w.ExpectNoChange("after the apply")
	if calls := proxy.Calls(); len(calls) < 2 || len(calls) > 6 {
		t.Errorf("a plan without change makes %d calls, want at most 6: %v", len(calls), calls)
	}
	byContext := []string{"DOCKER_HOST=", "DOCKER_CONFIG=" + dockerContext(here, here.bed.Nodes[0].Host())}
	if output, err := w.Command(t.Context(), byContext, "plan", "-detailed-exitcode").CombinedOutput(); err != nil {
		t.Errorf("by way of the present context: %v\n%s", err, output)
	}

	id := func(l *swarmLab) string {
		is, err := l.bed.Nodes[0].Client().SwarmInspect(l.Context())
		l.must(err)
		return is.ID
	}
	another := acceptance.Says(`this is the Swarm `+id(there), `not the Swarm `+id(here), `cluster "here"`,
		`terraform state rm`)
	elsewhere := "DOCKER_HOST=" + there.bed.Nodes[0].Host()
	w.keeps(another, elsewhere)
	w.keeps(another, "DOCKER_HOST=", "DOCKER_CONFIG="+dockerContext(there, there.bed.Nodes[0].Host()))
	for _, args := range [][]string{
		{"destroy", "-refresh=false", "-auto-approve"},
		{"apply", "-refresh=false", "-auto-approve", "-replace=trainyard_group.job"},
	} {
		output, err := w.Command(t.Context(), []string{elsewhere}, args...).CombinedOutput()
		if err == nil || !another.Match(output) {
			t.Errorf("terraform %s: %v, want an error like %q\n%s", strings.Join(args, " "), err, another, output)
		}
	}

	// A cluster with the same name is not mistaken for it either.
	second := newSwarmWorkspace(there)
	second.Env("DOCKER_HOST", there.bed.Nodes[0].Host())
	second.configure(strings.Replace(cluster, here.subnet, there.subnet, 1), there.group(workers(1, "wait")))
	second.Must("apply", "-auto-approve")
	w.keeps(another, elsewhere)
	second.ExpectNoChange("after the tries of the other")
	w.ExpectNoChange("back home")

	// Changing the endpoint doesn't make it another one either.
	w.configure(strings.ReplaceAll(here.cluster(""), here.bed.Nodes[0].Host(), there.bed.Nodes[0].Host()),
		here.group(workers(1, "wait")))
	acceptance.Refuses(w.Workspace, another, "plan")
	w.configure(cluster, here.group(workers(1, "wait")))
	if n := here.running("here"); n != 1 {
		t.Errorf("%d members run, want 1", n)
	}
	acctest.Eventually(t, "the member elsewhere to run", func() bool { return there.running("here") == 1 })
}
