//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// controllerMember and agentMember are the names of the residents among the members; they are in no group.
	residentPrefix   = "trainyard-"
	controllerMember = residentPrefix + "controller"
	agentMember      = residentPrefix + "agent"
	// startPatience is how long a supervisor may take to start, and startLook how often that is checked. After
	// startAgain, and then after twice as long each time, it is started again, as systemd takes one that is about to
	// end for a running one.
	startPatience = 30 * time.Second
	startLook     = 2 * time.Millisecond
	startAgain    = time.Second
	// lookAgain is how soon a wait checks again without any event: the supervisor may have died.
	lookAgain = 2 * time.Second
)

// supervise ensures that a supervisor is running.
func (e *Engine) supervise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	var started time.Time
	for again := time.Duration(0); ; {
		_, atWork, err := supervisor.AtWork(e.dir)
		if err != nil || atWork {
			return err
		}
		if time.Since(started) >= again {
			if exists, err := e.dir.Exists(); err != nil || !exists {
				return err
			}
			if err := e.startSupervisor(ctx); err != nil {
				return fmt.Errorf("starting the supervisor: %w", err)
			}
			started, again = time.Now(), max(startAgain, 2*again)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the supervisor did not start within %s; see %s", startPatience, e.dir.SupervisorLog())
		case <-time.After(startLook):
		}
	}
}

// startSupervisor starts a supervisor that outlives this process.
func (e *Engine) startSupervisor(ctx context.Context) error {
	if e.site.Supervise != nil {
		return e.site.Supervise(ctx)
	}
	log, err := os.OpenFile(e.dir.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(e.programFile(), "supervise", "--state-dir", e.dir.Root, "--cluster", e.dir.Cluster)
	command.Stdout, command.Stderr = log, log
	command.Dir = "/"
	// Its own mark distinguishes it from the instance that may have started it, the controller.
	command.Env = append(environmentList(baseEnvironment()), proctree.InstanceVariable+"=supervisor-"+e.dir.Cluster)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // it ends after this process, or at once if another one is running
	return nil
}

func environmentList(env map[string]string) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// retire ends the residents of another version. The members keep running, and the next supervisor takes them over.
func (e *Engine) retire(ctx context.Context) error {
	holder, atWork, err := supervisor.AtWork(e.dir)
	if err != nil || !atWork || holder.Version == e.program.Version {
		return err
	}
	// The controller first: it would restart the supervisor.
	if err := e.StopController(ctx); err != nil {
		return err
	}
	err = proctree.Signal(proctree.Process{PID: holder.Process, StartTime: holder.StartTime}, unix.SIGTERM)
	if err != nil && !errors.Is(err, proctree.ErrGone) {
		return err
	}
	return e.dir.AwaitRelease(ctx, statedir.SupervisorLock)
}

// StartController has the supervisor run the controller and the agent of the stored cluster, see [Engine.RunResidents].
func (e *Engine) StartController(ctx context.Context) error {
	cluster, err := engine.Cluster(ctx, e)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return e.RunResidents(ctx, cluster.Spec)
}

// RunResidents has the supervisor run the controller and the agent of a cluster, as members of no group. Residents of
// another version are replaced.
func (e *Engine) RunResidents(ctx context.Context, cluster domain.Cluster) error {
	if err := e.retire(ctx); err != nil {
		return err
	}
	agentAt, controllerAt := cluster.MetricsAddresses(e.answering(cluster))
	var err error
	if e.site.Elsewhere {
		err = e.Remove(ctx, []string{controllerMember})
	} else {
		err = e.putResident(controllerMember, e.environment(),
			append(e.controllerCommand(), metricsAt(controllerAt)...)...)
	}
	switch {
	case err != nil:
		return err
	case cluster.Agent.Disabled:
		err = e.Remove(ctx, []string{agentMember})
	default:
		command := append([]string{cmp.Or(e.agentProgram(), supervisor.Self), "agent", "--socket", e.agentSocket()},
			e.measured()...)
		err = e.putResident(agentMember, e.agentEnvironment(), append(command, metricsAt(agentAt)...)...)
	}
	if err != nil {
		return err
	}
	return e.supervise(ctx)
}

// measured are the agent's arguments that select what it measures.
func (e *Engine) measured() []string {
	if e.site.Units {
		return []string{"--disk", e.dir.Path(), "--units"}
	}
	return []string{"--disk", e.dir.Path()}
}

// answering is the host at whose address residents serve Prometheus: this one, or the first if all hosts are this
// machine.
func (e *Engine) answering(cluster domain.Cluster) string {
	if names := cluster.HostNames(); e.site.Host == "" && len(names) > 0 {
		return names[0]
	}
	return e.site.Host
}

// metricsAt are a resident's arguments that set where it serves Prometheus.
func metricsAt(address string) []string {
	if address == "" {
		return nil
	}
	return []string{"--metrics", address}
}

// agentEnvironment is the environment of the agent, which labels its metrics with the host's name in the cluster.
func (e *Engine) agentEnvironment() map[string]string {
	env := e.environment()
	if e.site.Host == "" {
		return env
	}
	env = maps.Clone(env)
	env[telemetry.HostVariable] = e.site.Host
	return env
}

// controllerCommand is the command of the controller.
func (e *Engine) controllerCommand() []string {
	which := e.site.Controller
	if which == nil {
		which = []string{"--engine", Name}
	}
	return slices.Concat([]string{supervisor.Self, "controller"}, which,
		[]string{"--state-dir", e.dir.Root, "--cluster", e.dir.Cluster})
}

// putResident ensures that the supervisor runs this version of a resident.
func (e *Engine) putResident(member string, env map[string]string, command ...string) error {
	hash := strings.Join(append(slices.Clone(command), e.program.Version), " ")
	present, err := statedir.Read[domain.MemberSpec](e.dir.Document(statedir.Specs, member))
	if err == nil && present.Hash == hash {
		return nil
	}
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return statedir.Write(e.dir.Document(statedir.Specs, member), domain.MemberSpec{
		Cluster: e.dir.Cluster, Name: member, Role: strings.TrimPrefix(member, residentPrefix), Hash: hash,
		Run:        present.Run + 1,
		Command:    command,
		Env:        env,
		WorkingDir: "/",
		Restart: domain.RestartRule{
			Condition: domain.RestartAlways, Delay: domain.Duration(100 * time.Millisecond),
		},
		GracePeriod: domain.DefaultGracePeriod,
	}, e.durability())
}

// StopController ends the controller and the agent, and waits until they have ended.
func (e *Engine) StopController(ctx context.Context) error {
	residents := []string{controllerMember, agentMember}
	removed := false
	return e.await(ctx, "controller of cluster "+e.dir.Cluster, func() (gone bool, err error) {
		if !removed {
			if err := e.Remove(ctx, residents); err != nil {
				return false, err
			}
			removed = true
		}
		states, err := e.dir.Names(statedir.States)
		return !slices.ContainsFunc(residents, func(member string) bool { return states[member] }), err
	})
}

// await returns once ended reports true, which it checks after each change. Without a cluster there is nothing to wait
// for.
func (e *Engine) await(ctx context.Context, what string, ended func() (bool, error)) error {
	if _, err := os.Stat(e.dir.Path()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		if done, err := ended(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the %s did not end: %w", what, context.Cause(ctx))
		case _, open := <-events:
			if !open {
				return fmt.Errorf("lost the watch on the state directory while waiting for the %s to end; try again",
					what)
			}
		case <-time.After(lookAgain):
			if err := e.supervise(ctx); err != nil {
				return err
			}
		}
	}
}

// Guard keeps a supervisor running until ctx is done: the controller restarts the supervisor, and the supervisor
// restarts the controller.
func (e *Engine) Guard(ctx context.Context) error {
	for ctx.Err() == nil {
		err := e.dir.AwaitRelease(ctx, statedir.SupervisorLock)
		if errors.Is(err, engine.ErrNotFound) || errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if exists, err := e.dir.Exists(); err != nil || !exists {
			return err
		}
		if err := e.supervise(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Residents returns the states of the controller and the agent, as the supervisor reports them.
func (e *Engine) Residents(ctx context.Context) (domain.Residents, error) {
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return domain.Residents{}, err
	}
	if err := e.supervise(ctx); err != nil {
		return domain.Residents{}, err
	}
	agentAt, controllerAt := cluster.Spec.MetricsAddresses(e.answering(cluster.Spec))
	var all domain.Residents
	if !e.site.Elsewhere {
		all.Controller, err = e.resident(controllerMember)
		all.Controller.Metrics = controllerAt
	}
	if err != nil || cluster.Spec.Agent.Disabled {
		return all, err
	}
	agent, err := e.resident(agentMember)
	agent.Metrics = agentAt
	all.Agents = map[string]domain.Resident{}
	for name := range cluster.Spec.Hosts { // all of them are this machine
		all.Agents[name] = agent
	}
	return all, err
}

// resident returns the state of the controller or the agent.
func (e *Engine) resident(member string) (domain.Resident, error) {
	spec, err := statedir.Read[domain.MemberSpec](e.dir.Document(statedir.Specs, member))
	if errors.Is(err, engine.ErrNotFound) {
		return domain.Resident{
			State: domain.ResidentAbsent, Error: "never started, or removed",
			Advice: "The next apply that changes the cluster or a group starts it.",
		}, nil
	}
	if err != nil {
		return domain.Resident{}, err
	}
	state, err := statedir.Read[statedir.State](e.dir.Document(statedir.States, member))
	switch {
	case errors.Is(err, engine.ErrNotFound) || err == nil && state.Run != spec.Run:
		return domain.Resident{State: domain.ResidentStarting}, nil
	case err != nil:
		return domain.Resident{}, err
	}
	resident := judge(state, time.Now())
	if resident.State == domain.ResidentFailing {
		resident.Advice = "See its log: " + e.dir.Log(member) + "."
	}
	return resident, nil
}

// judge derives a resident's state from the supervisor's record of it.
func judge(state statedir.State, now time.Time) domain.Resident {
	ran := func(until time.Time) time.Duration {
		if state.StartedAt == nil {
			return 0
		}
		return until.Sub(*state.StartedAt)
	}
	switch {
	case state.State == domain.StateRunning && (state.Restarts == 0 || ran(now) > domain.ResidentSettled):
		return domain.Resident{State: domain.ResidentRunning}
	case state.State == domain.StateRunning, state.LastError == "":
		return domain.Resident{State: domain.ResidentStarting}
	}
	failing := domain.Resident{State: domain.ResidentFailing, Error: state.LastError, Attempts: 1}
	if state.FinishedAt != nil && ran(*state.FinishedAt) <= domain.ResidentInARow {
		failing.Attempts += state.Restarts
	}
	return failing
}
