//! Where a device under test lives: namespaces, links, CPU placement, and the devices.
