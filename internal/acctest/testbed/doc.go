//go:build linux

// Package testbed runs several simulated machines on this one, connected by a network: nodes with a real Docker Engine
// each, which can form a Swarm, or bare hosts with a real systemd and SSH server. A test sets up its own bed, which
// disappears with the test, however that ends. It needs root; nodes need the commands dockerd and iptables (apt-get
// install docker.io iptables), hosts need debootstrap.
//
//	bed := testbed.New(t, testbed.Options{Nodes: 3, Managers: 1})
//	err := bed.Load(ctx, "trainer:1", archive)         // an image, onto all nodes
//	bed.Nodes[0].Client().ServiceCreate(ctx, …)        // the client of a node's Engine
//	provider(bed.Nodes[0].Host())                      // its endpoint, for other programs: "unix://…"
//
// A package with many tests shares beds among them, and closes them when all tests have ended:
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
//	err = host.Cut()                               // drops all its traffic, until Heal
//	err = host.Kill()                              // cuts its power, until Start; its disk stays
//
// With HostOptions.Docker, systemd runs a Docker Engine on each host, as Debian's package does:
//
//	err := bed.Load(ctx, "trainer:1", archive)                // an image, onto all hosts
//	host.Client().ContainerCreate(ctx, …)                     // the client of a host's Engine, across reboots
//	err = host.InstallNVIDIA(ctx, "GPU-1", "GPU-2")           // a toolkit without GPUs: see VisibleDevices
//	host.Run(ctx, "systemctl mask --now docker.socket docker.service") // a host whose Engine is stopped
//
// HostOptions.CPUs limits how many of this machine's processors a host can use, so that several hosts are faster than
// one.
//
// # Faults
//
// A Node can be paused, killed, restarted, crashed and cut off the network; Bed.Await waits until its Swarm has
// noticed. A Proxy between a client and an Engine lists the calls, and fails, delays or drops those that a Fault
// selects.
//
//	proxy := testbed.NewProxy(t, bed.Nodes[0])
//	proxy.On(testbed.Fault{Nth: 3, Do: testbed.DropAnswer()})
//	proxy.On(testbed.Fault{Match: testbed.Matching("POST", "/services/*/update"), Nth: 1, Onwards: true, Do: testbed.Drop()})
//
// # How a node is made
//
// A node is a process with its own PID, mount, UTS and network namespaces. The process is this same program, started
// again (see init): it is the node's init, starts dockerd on request, and reaps processes. It lives as long as its
// connection to the process that made it. When it ends, the kernel kills everything that runs on the node, and removes
// its mounts and devices. So after a test that is killed, only the bed's folder and its control groups remain. The
// folder is locked by its owner, and the next Start removes the folders that nobody holds.
//
// Each node has its own /run, so /var/run/docker.sock is the node's own Engine for containers that mount it, as on any
// host, and writes to its own copy of /etc. All other folders are this machine's. The nodes' network cables end in a
// bridge in a separate network namespace, and no device or address is created in this machine's: beds can't conflict,
// and all have the same addresses. There is no default route, so a pull from a registry fails at once.
//
// # How a host is made
//
// Hosts run Debian 12, which debootstrap installs once into the user's cache folder. It is the lower layer of a host's
// disk; the upper layer is in the bed's folder. The host's first process creates namespaces, mounts and devices as this
// program, and then becomes systemd; the kernel kills it when the process that made it ends. The host's resource usage
// is counted and limited in its own control groups, v1 or v2, in which systemd creates those of units. Logins are not
// systemd-logind sessions, because libpam-systemd is not installed. Host names are not resolved. Memory, processors,
// kernel and clock are this machine's: a host sees all of them, and can't set the last two. The network settings in
// /proc/sys/net are its own.
//
// Hosts with a Docker Engine run another system: Debian 12 with docker.io. The Engine's data is in the bed's folder
// rather than on the disk, because containers' file systems are overlays themselves. The containers' control groups are
// managed by systemd, as on hosts with v2. Privileged containers don't work, because they would get what a host does
// not have.
//
// The forwarded port accepts connections even for a host that is off or cut off, and closes those that lead nowhere
// within a few seconds.
//
// # Engines
//
// Nodes run this machine's Docker Engine with Docker's own image store. TRAINYARD_TEST_ENGINE selects another one (see
// Engines), and Options.Mixed gives the nodes of a bed different ones. Debian 13's Engine runs on Debian 13's /usr and
// /etc, which debootstrap installs once into the user's cache folder.
package testbed
