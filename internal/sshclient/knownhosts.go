package sshclient

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// defaultKnownHosts are the files that ssh reads.
var defaultKnownHosts = []string{"~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}

// knownHostsText is the name of the given text in messages.
const knownHostsText = "the given known_hosts text"

// knownHosts are the trusted host keys.
type knownHosts struct {
	db    *knownhosts.HostKeyDB
	names map[string]string // names in messages, by file
	add   string            // the file to which a user would add a key; empty for the text
}

// loadKnownHosts reads the known_hosts files each time, so that a key that was just added counts.
func loadKnownHosts(credentials Credentials) (*knownHosts, error) {
	k := &knownHosts{names: map[string]string{}}
	paths := credentials.KnownHosts
	byDefault := len(paths) == 0 && credentials.KnownHostsText == ""
	if byDefault {
		paths = defaultKnownHosts
	}
	if len(paths) > 0 {
		k.add = paths[0]
	}
	var files []string
	for _, path := range paths {
		file, err := expand(path)
		if err != nil {
			return nil, Failed(nil, "known_hosts: %s", err)
		}
		if _, err := os.Stat(file); byDefault && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, k.names[file] = append(files, file), path
	}
	if credentials.KnownHostsText != "" {
		// The parser only reads files.
		file, err := temporary(credentials.KnownHostsText)
		if err != nil {
			return nil, Failed(nil, "%s: %s", knownHostsText, err)
		}
		// A leftover file contains no secrets, and is in the directory for temporary files.
		defer func() { _ = os.Remove(file) }()
		files, k.names[file] = append(files, file), knownHostsText
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		text, named := err.Error(), false
		for file, name := range k.names {
			named = named || strings.Contains(text, file)
			text = strings.ReplaceAll(text, file, name)
		}
		if !named { // as for a line that is too long
			text = strings.Join(k.sorted(), " or ") + ": " + text
		}
		return nil, Failed(nil,
			"can't read known_hosts, so no host can be verified; fix or remove the line, or use another file: %s", text)
	}
	k.db = db
	return k, nil
}

// temporary returns the path of a new file with this content.
func temporary(content string) (path string, err error) {
	f, err := os.CreateTemp("", "known_hosts-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// sources says where host keys were looked up.
func (k *knownHosts) sources() string {
	if len(k.names) == 0 {
		return "neither of " + strings.Join(defaultKnownHosts, " and ") + " exists"
	}
	return "it is not in " + strings.Join(k.sorted(), ", ")
}

// sorted returns the files' names in messages.
func (k *knownHosts) sorted() []string { return slices.Sorted(maps.Values(k.names)) }

// hostKeys verifies the key of one server.
type hostKeys struct {
	known   *knownHosts
	hop     hop
	through hop // the previous server, if any
}

// algorithms returns the algorithms of the server's known keys; without this, a server with several keys could present
// one that is not in the file. It is empty for an unknown server, which may present any.
func (v hostKeys) algorithms() []string {
	var all []string
	for _, key := range v.known.db.HostKeys(v.hop.HostPort()) {
		kinds := []string{key.Type()}
		switch {
		case key.Cert:
			kinds = certificates // an authority signs keys of any kind
		case key.Type() == ssh.KeyAlgoRSA:
			kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, kind := range kinds {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	return all
}

// certificates are the host certificate algorithms, except those with SHA-1 and DSA.
var certificates = []string{
	ssh.CertAlgoED25519v01,
	ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// check returns nil for a known key of the server, or one signed by a known authority.
func (v hostKeys) check(addr string, remote net.Addr, key ssh.PublicKey) error {
	err := v.known.db.HostKeyCallback()(addr, remote, key)
	if err == nil {
		return nil
	}
	var revoked *xknownhosts.RevokedError
	var mismatch *xknownhosts.KeyError
	presents := key.Type() + " " + ssh.FingerprintSHA256(key)
	switch {
	case errors.As(err, &revoked):
		return Failed(ErrHostKeyRevoked,
			"the host key of %s is revoked by %s: %s; don't connect until the host has a new key", v.hop.HostPort(),
			v.line(revoked.Revoked), presents)
	case errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		var known []string
		for _, want := range mismatch.Want {
			known = append(known,
				fmt.Sprintf("%s %s (%s)", want.Key.Type(), ssh.FingerprintSHA256(want.Key), v.line(want)))
		}
		return v.changed("it presents "+presents, "expected "+strings.Join(known, ", "))
	case len(v.algorithms()) > 0:
		return Failed(ErrHostKeyUnknown, "the host certificate of %s, %s, is not accepted: %s; check that the "+
			"authority in known_hosts signed it for this name, and that it is valid now", v.hop.HostPort(), presents,
			err)
	}
	return Failed(ErrHostKeyUnknown, "the host key of %s is not known: %s. It presents %s: compare this with the "+
		"output of ssh-keygen -lf for the keys in /etc/ssh on the host itself, then add it: %s",
		v.hop.HostPort(), v.known.sources(), presents, v.scan())
}

// otherType returns the error for a server without a key of any known kind.
func (v hostKeys) otherType(has []string) error {
	return v.changed("it has keys of type "+strings.Join(has, ", "), "expected "+strings.Join(v.algorithms(), ", "))
}

func (v hostKeys) changed(presents, known string) error {
	forget := "remove the old one from " + knownHostsText
	if v.known.add != "" {
		forget = fmt.Sprintf("ssh-keygen -R '%s' -f %s", xknownhosts.Normalize(v.hop.HostPort()), v.known.add)
	}
	return Failed(ErrHostKeyChanged,
		"the host key of %s has changed: %s, %s. Either someone is impersonating the host, or it has new keys. "+
			"Only if you know that it has, forget the old one (%s) and add the new one: %s", v.hop.HostPort(), presents,
		known, forget, v.scan())
}

// scan returns the command that adds the server's keys, for a machine that can reach the server.
func (v hostKeys) scan() string {
	command := fmt.Sprintf("ssh-keyscan -p %d %s", v.hop.Port, v.hop.Name)
	if t := v.through; t != (hop{}) {
		command = fmt.Sprintf("ssh -p %d %s@%s %s", t.Port, t.User, t.Name, command)
	}
	if v.known.add == "" {
		return command + ", and add its output to " + knownHostsText
	}
	return command + " >> " + v.known.add
}

// line returns the location of a key.
func (v hostKeys) line(key xknownhosts.KnownKey) string {
	return fmt.Sprintf("%s line %d", v.known.names[key.Filename], key.Line)
}
