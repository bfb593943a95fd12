// Command coscheduling is kube-scheduler with one plugin more: scheduler-plugins' coscheduling.
//
// It is a peer that bench/ measures, built as the plugin's README says. Nothing of quorate uses it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers the REST client's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // registers the version metric
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // makes CoschedulingArgs decodable
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

func main() {
	command := app.NewSchedulerCommand(app.WithPlugin(coscheduling.Name, coscheduling.New))
	os.Exit(cli.Run(command))
}
