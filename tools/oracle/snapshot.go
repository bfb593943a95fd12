package main

import (
	"sort"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// lister is the snapshot that plugins see. Plugins keep the pointer, so it stays and its inside is
// replaced for each pod. Nodes are in order of name: a Snapshot has them in Go's order of a map.
type lister struct {
	*cache.Snapshot
	all, affinity, antiAffinity []fwk.NodeInfo
}

func (l *lister) replace(pods []*v1.Pod, nodes []*v1.Node) {
	l.Snapshot = cache.NewSnapshot(pods, nodes)
	l.all, _ = l.Snapshot.List()
	l.affinity, _ = l.Snapshot.HavePodsWithAffinityList()
	l.antiAffinity, _ = l.Snapshot.HavePodsWithRequiredAntiAffinityList()
	for _, infos := range [][]fwk.NodeInfo{l.all, l.affinity, l.antiAffinity} {
		sort.Slice(infos, func(i, j int) bool { return infos[i].Node().Name < infos[j].Node().Name })
	}
}

func (l *lister) NodeInfos() fwk.NodeInfoLister       { return l }
func (l *lister) StorageInfos() fwk.StorageInfoLister { return l.Snapshot.StorageInfos() }

func (l *lister) List() ([]fwk.NodeInfo, error)                     { return l.all, nil }
func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return l.affinity, nil }
func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.antiAffinity, nil
}
