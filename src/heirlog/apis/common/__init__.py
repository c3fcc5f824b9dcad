"""What several APIs share: the descriptor, authorization, ports, and descriptions in the same words."""
