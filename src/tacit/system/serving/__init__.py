"""What services that listen share: limits on connections, on heads and on bodies."""
