package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nominator knows the pods nominated to nodes, in the order of the case. The scheduler's own one is
// part of its queue, which the oracle has no use for.
type nominator struct{ byNode map[string][]fwk.PodInfo }

func (n *nominator) replace(nominated []nominated) error {
	n.byNode = map[string][]fwk.PodInfo{}
	for _, one := range nominated {
		info, err := framework.NewPodInfo(one.Pod)
		if err != nil {
			return err
		}
		n.byNode[one.Node] = append(n.byNode[one.Node], info)
	}
	return nil
}

func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.byNode[node] }

// What follows changes nothing: a case says what is nominated, and an answer does not act.
func (n *nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n *nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominator) Activate(klog.Logger, map[string]*v1.Pod)                      {}
