//go:build linux

package program

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// withoutSystem marks a run of these tests on a system without certificate authorities.
const withoutSystem = "TRAINYARD_TEST_WITHOUT_ROOTS"

// TestTrustRoots runs itself again on a system that trusts no certificate authority.
func TestTrustRoots(t *testing.T) {
	if os.Getenv(withoutSystem) == "" {
		alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTrustRoots$")
		alone.Env = append(os.Environ(), withoutSystem+"=1", "SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere")
		if output, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	if err := trustRoots(); err != nil {
		t.Fatal(err)
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if root.Constraint != nil {
			continue
		}
		if _, err := certificate.Verify(x509.VerifyOptions{
			CurrentTime: certificate.NotBefore.AddDate(0, 0, 1), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err != nil {
			t.Errorf("%s is not trusted: %v", certificate.Subject, err)
		}
	}
}
