//go:build linux

// Package testbed runs several machines on this one, connected by a network: nodes with a real Docker Engine each,
// which can form a Swarm, or bare hosts with a real systemd and SSH server. Tests set a bed up by themselves and it
// vanishes with them, however they end. It needs root; for nodes the commands dockerd and iptables (apt-get install
// docker.io iptables), for hosts debootstrap.
//
//	bed := testbed.New(t, testbed.Options{Nodes: 3, Managers: 1})
//	err := bed.Load(ctx, "trainer:1", archive)         // an image, onto all nodes
//	bed.Nodes[0].Client().ServiceCreate(ctx, …)        // the client of a node's engine
//	provider(bed.Nodes[0].Host())                      // its endpoint, for other programs: "unix://…"
//
// A package with many tests shares beds among them, and closes them when all have ended:
//
//	func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }
//	bed := testbed.Shared(t, testbed.Options{Nodes: 3, Managers: 1})
//
// # Hosts
//
//	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 3}) // or SharedHosts
//	host := bed.Hosts[0]
//	login(host.SSH, bed.KeyFile, bed.KnownHosts)   // 127.0.0.1:PORT; as root, or as ops, who has sudo
//	output, err := host.Run(ctx, "systemctl cat …") // as root, and not by SSH
//	content, err := os.ReadFile(host.Root() + "/etc/systemd/system/…")
//	err = host.Cut()                               // drops what is sent to it or by it, until Heal
//	err = host.Kill()                              // cuts its power, until Start; its disk stays
//
// With HostOptions.Docker systemd runs a Docker Engine on each host, as Debian's package does:
//
//	err := bed.Load(ctx, "trainer:1", archive)                // an image, onto all hosts
//	host.Client().ContainerCreate(ctx, …)                     // the client of a host's engine, whatever its boot
//	err = host.InstallNVIDIA(ctx, "GPU-1", "GPU-2")           // a toolkit without GPUs: see VisibleDevices
//	host.Run(ctx, "systemctl mask --now docker.socket docker.service") // a host whose engine is stopped
//
// With HostOptions.CPUs a host keeps no more of this machine's processors busy, so that several are faster than one.
//
// # Faults
//
// A Node can be paused, killed, restarted, crashed and cut off the network; Bed.Await waits until its Swarm has seen
// it. A Proxy stands between a client and an engine: it lists the calls, and fails, delays or drops those that a Fault
// names.
//
//	proxy := testbed.NewProxy(t, bed.Nodes[0])
//	proxy.On(testbed.Fault{Nth: 3, Do: testbed.DropAnswer()})
//	proxy.On(testbed.Fault{Match: testbed.Matching("POST", "/services/*/update"), Nth: 1, Onwards: true, Do: testbed.Drop()})
//
// # How a node is made
//
// A node is a process with namespaces of its own for processes, mounts, hostname and network. The process is this very
// program, started again (see init): it is the node's init, starts dockerd when told to, and reaps. It lives as long as
// the connection to the process that made it, and when it goes, the kernel ends all that runs on the node and drops its
// mounts and devices. So nothing outlives a test that is killed but the bed's folder and its control groups. The folder
// is locked by its owner, and the next Start removes those that nobody holds.
//
// Each node has a /run of its own, hence /var/run/docker.sock is its own engine for containers that mount it, as on any
// host, and writes to its own copy of /etc. All other folders are this machine's. The nodes' cables end in a bridge in
// a network namespace of its own, and no device or address is made in this machine's: beds cannot clash, and all have
// the same addresses. There is no default route: a pull from a registry fails at once.
//
// # How a host is made
//
// The system of hosts is Debian 12's, which debootstrap installs once into the user's cache folder. A host has it as
// the lower layer of its disk, and writes to an upper one in the bed's folder. Its first process makes namespaces,
// mounts and devices as this program, and then becomes systemd; the kernel kills it when the process ends that made it.
// What the host uses is counted and limited in control groups of its own, of either version, in which systemd makes
// those of units. Logins are not sessions of systemd-logind, as libpam-systemd is not installed. Names are not
// resolved. Memory, processors, kernel and clock are this machine's: a host sees all of them, and can't set the latter
// two. The network's settings, in /proc/sys/net, are its own.
//
// Hosts with a Docker Engine have another system, which is Debian 12's with docker.io. What the engine stores is in the
// bed's folder rather than on the disk, as containers' file systems are overlays themselves. Control groups of
// containers are systemd's, as on hosts that have those of version 2. Privileged containers can't be had: they would
// get what a host has not.
//
// The forwarded port accepts connections also for a host that is off or cut off, and closes those that lead to nothing
// within some seconds.
//
// # Engines
//
// Nodes run this machine's Docker Engine with Docker's own image store. TRAINYARD_TEST_ENGINE chooses another one (see
// Engines), and Options.Mixed gives the nodes of a bed different ones. Debian 13's Engine runs on Debian 13's /usr and
// /etc, which debootstrap installs once into the user's cache folder.
package testbed
