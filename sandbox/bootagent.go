package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// bootIDFile is the file with the id of a machine's boot.
const bootIDFile = "boot_id"

// agent starts the boot agent of a simulated instance. It is a process of this machine with the
// flags of the user data, except for flags about the machine itself.
func (i *bootAgents) agent(in ec2.Instance, metadata string) (process.Options, error) {
	program, err := findLifeboatd(i.s.opts.Lifeboatd)
	if err != nil {
		return process.Options{}, err
	}
	// The kubelet's identity, which exists before its Node.
	kubeconfig, err := i.kubeconfig(in.PrivateDNSName)
	if err != nil {
		return process.Options{}, err
	}
	prepare, err := machines.PrepareTime(in)
	if err != nil {
		return process.Options{}, err
	}
	flags, _ := machines.BootAgent(in)
	flags = slices.DeleteFunc(flags, runsCommands)
	command := func(order string) string { return "echo " + order + " > '" + i.orders(in.ID) + "'" }
	running := "'" + filepath.Join(i.memory(in.ID), "kubelet") + "'" // a file, while the kubelet runs
	// If a flag is repeated, the last one is used.
	args := slices.Concat([]string{"agent", "boot", "--poll-interval=1s"}, flags, []string{
		"--state-dir=" + i.disk(in.ID),
		"--gate-file=" + filepath.Join(i.memory(in.ID), "gate"),
		"--boot-id-file=" + filepath.Join(i.memory(in.ID), bootIDFile),
		"--kubeconfig=" + kubeconfig,
		"--start=touch " + running + " && " + command(startKubelet),
		"--stop=rm -f " + running + " && " + command(stopKubelet),
		"--active=test -e " + running,
		"--pull=true REF", // nothing to pull; prepare takes the time
	})
	if prepare > 0 {
		args = append(args, "--prepare=sleep "+strconv.FormatFloat(prepare.Seconds(), 'f', -1, 64))
	}
	name := "boot-" + in.PrivateDNSName
	return process.Options{
		Name: name, Path: program, Args: args, Dir: i.disk(in.ID), LogFile: i.s.path(name + ".log"),
		Env: append(cloudEnv(i.s.State()), "AWS_EC2_METADATA_SERVICE_ENDPOINT="+metadata),
	}, nil
}

// runsCommands lists flags that would run a machine's command on this machine.
func runsCommands(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return slices.Contains([]string{"--prepare", "--start", "--stop", "--active", "--pull", "--wipe", "--wipe-path", "--config"}, name)
}

// cloudEnv is the environment of a program that uses the emulated AWS.
func cloudEnv(st State) []string {
	env := bareEnv()
	for _, v := range st.Env()[1:] { // each program has its own kubeconfig
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}
