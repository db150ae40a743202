// Kube is every Kubernetes program the test bed runs, linked into one executable: the components
// share nearly all of their code, so one link takes a sixth of the time and of the disk.
//
//	kube <program> [flags of that program]
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// program builds a command only when it is asked for: each constructor registers global flags.
type program struct {
	name    string
	command func() *cobra.Command
}

var programs = []program{
	{"kube-apiserver", apiserver.NewAPIServerCommand},
	{"kube-controller-manager", controllermanager.NewControllerManagerCommand},
	{"kube-proxy", kubeproxy.NewProxyCommand},
	{"kube-scheduler", func() *cobra.Command { return scheduler.NewSchedulerCommand() }},
	{"kubectl", cmd.NewDefaultKubectlCommand},
	{"kubelet", func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }},
}

func main() {
	if len(os.Args) > 1 {
		wanted := os.Args[1]
		at := slices.IndexFunc(programs, func(p program) bool { return p.name == wanted })
		if at >= 0 {
			// Commands read os.Args themselves and expect their own name first.
			os.Args = os.Args[1:]
			os.Exit(cli.Run(programs[at].command()))
		}
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	fmt.Fprintf(os.Stderr, "usage: kube %s [flags]\n", strings.Join(names, "|"))
	os.Exit(2)
}
